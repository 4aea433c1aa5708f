# How the loops over numbers are compiled. No contraction: a fused multiply-add rounds once where two operations round
# twice, and every processor must give the same bits. The last flag silences clang about g++'s hints.
set(numeric_loop_flags -O3 -ffp-contract=off -Wno-unknown-pragmas)

# A module that is also a part of a shared library: position independent, with nothing exported but what says so.
function(part_of_shared_library name)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
