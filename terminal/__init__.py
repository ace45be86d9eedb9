"""How commands meet a person or a script: words by click, tables and progress by rich, exit codes. Knows no product."""
