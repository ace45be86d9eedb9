from django.db import models


class Order(models.Model):
    number = models.IntegerField(primary_key=True)


class Refund(models.Model):
    key = models.TextField(primary_key=True)
    order = models.ForeignKey(Order, models.CASCADE)
    cents = models.IntegerField()
