from tests.pages.conftest import cast as cast
from tests.pages.conftest import olga as olga
