"""The family of data-adaptive kernels F o K (the method DANK), for SVM and regression."""
