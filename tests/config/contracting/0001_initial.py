from django.db import migrations, models


class Migration(migrations.Migration):
    """What is there before."""

    operations = [
        migrations.CreateModel("Thing", [("id", models.BigAutoField(primary_key=True)), ("name", models.TextField())])
    ]
