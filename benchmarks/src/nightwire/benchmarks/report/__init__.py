"""The report: one page and one table, made from results and from nothing else."""

from nightwire.benchmarks.report.rendering.markdown import markdown, terminal_lines
from nightwire.benchmarks.report.rendering.page import html_page
from nightwire.benchmarks.report.rendering.readme import BlockError, readme_block, readme_of, rewrite

__all__ = ["BlockError", "html_page", "markdown", "readme_block", "readme_of", "rewrite", "terminal_lines"]
