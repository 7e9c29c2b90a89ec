"""One native library or one algorithm per file, found by the registry.

A solver file reads top to bottom: what it takes, settings translated, the call, the answer
translated. It holds

1. its one sentence, then the mathematics or the native statuses in plain text;
2. one subclass of `klopt.model.backend.Backend`: `name` (the file's own), `library`, `offers`,
   `honours`, `proves`, `rank`, `exempt`, and `run(form, settings, start=None) -> Answer`;
3. exactly one `BACKEND`, an instance of it.

It imports from the core and from the underscored helpers of this folder, never from problems; the
native library only inside `run`. It never prints, never changes the form, never reads the network,
the environment or global state, and returns multipliers with Px + c + A'y = 0, y in K*. An answer
is a claim: a wrong one is counted against the backend and never becomes a verdict.

Nothing else has to be edited: `klopt.check_backend` tests the backend as soon as the file exists.
"""
