// Loads the functions of libfuse3 when the first mount is made (os/shared_library.hpp): most jobs
// have no mounted channel, and their agents start faster without the library.
//
// Threads: callable from anywhere. Errors: libfuse() on a machine without libfuse3 ends the
// program. Lifetime: the library stays loaded.
#pragma once

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 314
#endif
#include <fuse3/fuse_lowlevel.h>

namespace trainyard::mount {

#define TRAINYARD_FUSE_FUNCTIONS(X) \
  X(fuse_add_direntry)              \
  X(fuse_add_direntry_plus)         \
  X(fuse_opt_free_args)             \
  X(fuse_reply_attr)                \
  X(fuse_reply_buf)                 \
  X(fuse_reply_entry)               \
  X(fuse_reply_err)                 \
  X(fuse_reply_open)                \
  X(fuse_reply_statfs)              \
  X(fuse_req_userdata)              \
  X(fuse_session_destroy)           \
  X(fuse_session_exited)            \
  X(fuse_session_fd)                \
  X(fuse_session_mount)             \
  X(fuse_session_new)               \
  X(fuse_session_process_buf)       \
  X(fuse_session_receive_buf)       \
  X(fuse_session_unmount)

struct FuseLibrary {
#define TRAINYARD_DECLARE(name) decltype(&::name) name;
  TRAINYARD_FUSE_FUNCTIONS(TRAINYARD_DECLARE)
#undef TRAINYARD_DECLARE
};

// Requires: has_libfuse().
const FuseLibrary& libfuse();
bool has_libfuse();

}  // namespace trainyard::mount
