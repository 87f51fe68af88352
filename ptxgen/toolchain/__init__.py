"""ptxas and nvdisasm: find them, run them, read what they say, check what they made.

discover     where the tools are             assemble     PTX -> cubin, cached by content
diagnostics  ptxas's output as data          advice       what its remarks mean
disassemble  cubin -> SASS as data           lineinfo     SASS address -> PTX line
sass, flow   opcode mix, blocks, loops       verify       a kernel's promises against its SASS
cache        the content-addressed store     dump         PTXGEN_DUMP
process      one tool, one time limit
"""
