from django.db import migrations, models


class Migration(migrations.Migration):
    """For `has:acted`: the newest runs that a person acted on."""

    dependencies = [("runs", "0012_declared_order")]
    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("person_acted", True), ("status", "cancelled"), _connector="OR"),
                fields=["-id"],
                name="runs_run_acted",
            ),
        ),
    ]
