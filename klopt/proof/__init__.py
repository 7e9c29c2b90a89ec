"""The trusted core: from an answer to proven bounds, and the certificate that states them."""
