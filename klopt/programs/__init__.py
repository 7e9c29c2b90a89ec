"""The parts of general programs (LP, QCQP, SDP): constraints, duality and file formats."""
