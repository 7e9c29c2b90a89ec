"""The family of data-adaptive kernels F o K (DANK), in classification and in regression."""
