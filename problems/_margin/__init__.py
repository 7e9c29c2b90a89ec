"""The family of support vector machines: data, forms and proof that their duals share."""
