#include "os/ownership.hpp"

#include <fts.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace trainyard::os {

Result<void> give_tree(const std::string& path, uint32_t user_id, uint32_t group_id) {
  std::string root = path;
  char* const roots[] = {root.data(), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> tree(
      ::fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, nullptr), ::fts_close);
  if (!tree) return from_errno("walking the tree " + path);
  for (;;) {
    errno = 0;
    const FTSENT* entry = ::fts_read(tree.get());
    if (!entry && errno == 0) return ok();
    if (!entry) return from_errno("walking the tree " + path);
    switch (entry->fts_info) {
      case FTS_DP:
        break;  // its owner was changed before its entries
      case FTS_DNR:
      case FTS_ERR:
      case FTS_NS:
        return from_errno(std::string("reading the status of ") + entry->fts_path,
                          entry->fts_errno);
      default:
        if (entry->fts_statp->st_dev == tree->fts_dev &&
            ::lchown(entry->fts_accpath, user_id, group_id) != 0)
          return from_errno(std::string("changing the owner of ") + entry->fts_path);
    }
  }
}

}  // namespace trainyard::os
