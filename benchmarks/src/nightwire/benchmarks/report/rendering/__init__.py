"""The report as an HTML page, as Markdown, as the README's block, and as lines of a terminal."""
