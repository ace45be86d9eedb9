from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0018_bulk_release"),
    ]

    operations = [
        migrations.AddField(
            model_name="workersession",
            name="pool_started_at",
            field=models.DateTimeField(help_text="Of a child: when the process began whose child it is.", null=True),
        ),
    ]
