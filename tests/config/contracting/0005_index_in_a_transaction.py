from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("recovery", "0001_initial")]
    operations = [migrations.AddIndex("thing", models.Index(fields=["name"], name="thing_name"))]
