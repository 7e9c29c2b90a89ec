"""General programs (LP, QCQP, SDP): rows, matrix inequalities, quadratic constraints, duality, file formats."""
