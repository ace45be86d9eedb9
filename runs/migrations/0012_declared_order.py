from django.db import migrations, models


class Migration(migrations.Migration):
    """Releases as their agents' code writes them, for people: jsonb forgets the order of fields."""

    dependencies = [("runs", "0011_overview")]
    operations = [
        migrations.AddField(
            model_name="release",
            name="declared",
            field=models.TextField(db_default="", help_text="The same as text: jsonb forgets the order of fields."),
        ),
    ]
