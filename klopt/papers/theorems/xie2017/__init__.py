"""Claims of Xie, Ding, Gong and Wu (2017) on the elimination of rank-ordering constraints."""
