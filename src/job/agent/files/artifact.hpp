// Merges the files of all hosts in /opt/ml/model (or output/data) into one archive.
//
// The names of the first host stay. A file of a later host whose name is in use becomes
// NAME.algo-k, which the log reports. Directories with the same name are merged. A file with the
// name of another host's directory, or the reverse, is renamed likewise. Symbolic links that stay
// inside are kept; pipes, sockets and devices are left out, which the log reports.
//
// Threads: confined to one. Errors: those of tar.hpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/files/tar.hpp"
#include "agent/files/tree.hpp"
#include "agent/interruption.hpp"

namespace trainyard::agent {

// Assigns the names of entries in an archive. Pure.
class UnionNames {
 public:
  // Returns the name for an entry of `host`; nullopt for a directory that already exists. Requires:
  // `name` is clean (tar.hpp). Parents need not be placed before their entries.
  std::optional<std::string> place(const std::string& name, bool is_directory,
                                   const std::string& host);

 private:
  enum class What { file, directory };
  std::map<std::string, What> taken_;
  // "algo-2:x" -> "x.algo-2", for all entries below
  std::map<std::string, std::string> moved_directories_;
};

// Writes lines to the job's log, at most kJobLogLinesMax; further ones are only counted.
inline constexpr size_t kJobLogLinesMax = 50;
class JobLog {
 public:
  explicit JobLog(std::function<void(const std::string&)> say) : say_(std::move(say)) {}
  void say(const std::string& text);
  void finish();  // reports the number of omitted lines

 private:
  const std::function<void(const std::string&)> say_;
  size_t lines_ = 0;
};

class Artifact {
 public:
  // `place`: the path of the archive's content in the log: "/opt/ml/model".
  Artifact(TarWriter& tar, std::string place, JobLog& job_log, const Interruption& interruption)
      : tar_(tar), place_(std::move(place)), job_log_(job_log), interruption_(interruption) {}

  // Adds the files of this host: those below `directory` of the tree.
  Result<void> add_tree(const Tree& tree, const std::string& directory, const std::string& host);
  // Adds the staged tar of another host.
  Result<void> add_tar(Source bytes, const std::string& host);

 private:
  Result<void> add(TarEntry entry, const std::string& host, const Source& content);

  TarWriter& tar_;
  const std::string place_;
  JobLog& job_log_;
  const Interruption& interruption_;
  UnionNames names_;
};

}  // namespace trainyard::agent
