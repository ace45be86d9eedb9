import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel("Order", [("number", models.IntegerField(primary_key=True, serialize=False))]),
        migrations.CreateModel(
            "Refund",
            [
                ("key", models.TextField(primary_key=True, serialize=False)),
                ("order", models.ForeignKey(to="shop.Order", on_delete=django.db.models.deletion.CASCADE)),
                ("cents", models.IntegerField()),
            ],
        ),
    ]
