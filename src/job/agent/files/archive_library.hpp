// Loads libarchive when the first archive is read or written (os/shared_library.hpp). Internal to
// this module.
//
// Threads: callable from anywhere.
#pragma once

#include <archive.h>
#include <archive_entry.h>

namespace trainyard::agent {

// The functions that this module uses, by their names in libarchive.
#define TRAINYARD_ARCHIVE_FUNCTIONS(EACH)     \
  EACH(archive_entry_filetype)                \
  EACH(archive_entry_free)                    \
  EACH(archive_entry_hardlink)                \
  EACH(archive_entry_mtime)                   \
  EACH(archive_entry_new)                     \
  EACH(archive_entry_pathname)                \
  EACH(archive_entry_perm)                    \
  EACH(archive_entry_set_filetype)            \
  EACH(archive_entry_set_mtime)               \
  EACH(archive_entry_set_pathname)            \
  EACH(archive_entry_set_perm)                \
  EACH(archive_entry_set_size)                \
  EACH(archive_entry_set_symlink)             \
  EACH(archive_entry_size)                    \
  EACH(archive_entry_symlink)                 \
  EACH(archive_error_string)                  \
  EACH(archive_free)                          \
  EACH(archive_read_data)                     \
  EACH(archive_read_new)                      \
  EACH(archive_read_next_header)              \
  EACH(archive_read_open)                     \
  EACH(archive_read_support_filter_gzip)      \
  EACH(archive_read_support_format_empty)     \
  EACH(archive_read_support_format_tar)       \
  EACH(archive_set_error)                     \
  EACH(archive_write_add_filter_gzip)         \
  EACH(archive_write_close)                   \
  EACH(archive_write_data)                    \
  EACH(archive_write_finish_entry)            \
  EACH(archive_write_header)                  \
  EACH(archive_write_new)                     \
  EACH(archive_write_open)                    \
  EACH(archive_write_set_bytes_in_last_block) \
  EACH(archive_write_set_bytes_per_block)     \
  EACH(archive_write_set_filter_option)       \
  EACH(archive_write_set_format_gnutar)

struct ArchiveLibrary {
#define TRAINYARD_MEMBER(name) decltype(&::name) name;
  TRAINYARD_ARCHIVE_FUNCTIONS(TRAINYARD_MEMBER)
#undef TRAINYARD_MEMBER
};

const ArchiveLibrary& libarchive();

}  // namespace trainyard::agent
