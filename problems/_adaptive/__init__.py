"""The family of data-adaptive kernels F o K (DANK, Liu et al. 2020), for SVM and regression."""
