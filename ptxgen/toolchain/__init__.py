"""ptxas and nvdisasm: find them, run them, read what they say, check what they made.

discover     where the tools are              assemble     PTX -> cubin, cached by content
diagnostics  ptxas's output as data           advice       what its remarks mean
disassemble  cubin -> SASS as data            listing      SASS text as data
lineinfo     SASS address -> PTX line         elf          sections and symbols of a cubin
cubin_info   registers, stack, barriers       control      how an instruction is scheduled
sass, flow   opcode mix, blocks, loops        dataflow     what holds on every path
registers    what an instruction writes       sassmap      SASS beside PTX, registers, schedule
verify       a kernel's promises: counts and order, held against its SASS
paths        which hardware path each matrix and copy instruction took; intent: what PTX asked for
diff         two kernels' SASS compared beyond names and addresses
cache        the content-addressed store      dump         PTXGEN_DUMP
process      one tool, one time limit
"""
