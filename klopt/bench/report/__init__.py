"""What a comparison looks like: a self-contained page, charts as files, tables for notebooks."""

from klopt.model.html import html_table

__all__ = ["html_table"]
