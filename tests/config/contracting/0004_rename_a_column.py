from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("recovery", "0001_initial")]
    operations = [migrations.RenameField("thing", "name", "title")]
