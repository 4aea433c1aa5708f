// SourceArchive packs a job's sources as sourcedir.tar.gz, like the SageMaker SDK: a tar of regular
// files, with pax headers for long names, compressed by gzip.
//
// Threads: confined to one. Errors: invalid (a path or a file that is too large for an archive),
// those of the sink.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace trainyard::cli {

// The maximum size of all files together: sources, not data sets. The agent has the same limit when
// it unpacks them.
inline constexpr int64_t kSourceBytesMax = int64_t(20) << 30;

struct PackedFile {
  std::string name;      // in the archive: "src/train.py"
  uint32_t mode = 0644;  // permission bits
  int64_t bytes = 0;
  int64_t modified = 0;  // seconds since 1970
};

class SourceArchive {
 public:
  // Called with the bytes of the compressed archive, in order.
  using Sink = std::function<Result<void>(std::string_view)>;

  static std::unique_ptr<SourceArchive> open(Sink sink);
  virtual ~SourceArchive() = default;
  // Begins a file. Its content follows in calls of write(), file.bytes in all.
  virtual Result<void> add(const PackedFile& file) = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
  // Requires: the last file is complete.
  virtual Result<void> finish() = 0;
};

}  // namespace trainyard::cli
