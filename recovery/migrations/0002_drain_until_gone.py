from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("recovery", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="drain",
            name="until_gone",
            field=models.BooleanField(
                db_default=False,
                help_text="Of a worker: its gate is lifted by itself once no process of that name is left.",
            ),
        ),
    ]
