"""What a comparison looks like: one self-contained page, its charts as files, and small tables for notebooks."""

from klopt.model.html import html_table

__all__ = ["html_table"]
