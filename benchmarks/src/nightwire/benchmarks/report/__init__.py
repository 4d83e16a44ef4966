"""The report: one page and one table, made from results and from nothing else."""

from nightwire.benchmarks.report._brief import BlockError, readme_block, readme_of, rewrite
from nightwire.benchmarks.report._markdown import markdown, terminal_lines
from nightwire.benchmarks.report._page import html_page

__all__ = ["BlockError", "html_page", "markdown", "readme_block", "readme_of", "rewrite", "terminal_lines"]
