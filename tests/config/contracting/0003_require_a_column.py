from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("recovery", "0001_initial")]
    operations = [migrations.AddField("thing", "size", models.IntegerField(default=0))]
