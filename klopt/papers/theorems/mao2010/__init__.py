"""Claims of Mao and Tsang (2010) on parameter-free spectral kernel learning."""
