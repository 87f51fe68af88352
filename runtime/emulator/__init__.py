"""A CPU emulator of sm_90a PTX: the readable definition of what the instructions do.

    backend ─▶ machine ─▶ kernel   PTX to blocks of Python (program, webs, analysis, emit)
                  │
                  └─────▶ run      clusters, CTAs, warps and paths (state), until all have exited

Instructions by subject: alu_int alu_bits alu_float convert, access atomics, control warp barriers
cluster register_pool, mbarrier bulk tma map_memory, wgmma matrix. Each module adds its opcodes to
the table in `isa` and defines, beside its emitters, the functions that the generated code calls;
where that is much, the emitters are in a file of their own (`..._forms`).

Tensor maps, descriptors, swizzles and fragments are decoded from the ISA here, independently of
`ptxgen.layout`, so that one mistake cannot hide in both.
"""
