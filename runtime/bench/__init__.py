"""Measuring on the GPU: interleaved contests against a peer, and records with their provenance.

A number means something only beside a peer that was timed in the same run, on the same buffers, in
alternation, with a control that shows how far two runs of the *same* thing lie apart.
"""
