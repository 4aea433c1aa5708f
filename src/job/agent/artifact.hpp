// The union of what all hosts left in /opt/ml/model (or output/data), as one archive.
//
// The first host's names stay. A file of a later host whose name is taken becomes NAME.algo-k (and a line of
// the log says so); directories of one name are one directory; a file where another host has a directory, or
// the reverse, is renamed the same way. Symbolic links stay when they lead inside; pipes, sockets and devices
// are left out, and the log says so.
//
// Threads: confined to one. Errors: those of tar.hpp.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/interruption.hpp"
#include "agent/tar.hpp"
#include "agent/tree.hpp"

namespace trainyard::agent {

// Which names an archive has. Pure.
class UnionNames {
 public:
  // The name under which `host`'s entry goes in; nothing for a directory that is there already.
  // Requires: name is clean (tar.hpp). Parents need not have been placed.
  std::optional<std::string> place(const std::string& name, bool is_directory, const std::string& host);

 private:
  enum class What { file, directory };
  std::map<std::string, What> taken_;
  std::map<std::string, std::string>
      moved_directories_;  // "algo-2:x" -> "x.algo-2", so that all below follows
};

// Lines for the user, at most kSaidMax of them; the rest is counted.
inline constexpr size_t kSaidMax = 50;
class JobLog {
 public:
  explicit JobLog(std::function<void(const std::string&)> say) : say_(std::move(say)) {}
  void say(const std::string& text);
  void finish();  // says how many were not said

 private:
  const std::function<void(const std::string&)> say_;
  size_t said_ = 0;
};

class Artifact {
 public:
  // `place` is how the archive's content is called in the log: "/opt/ml/model".
  Artifact(TarWriter& tar, std::string place, JobLog& job_log, const Interruption& interruption)
      : tar_(tar), place_(std::move(place)), job_log_(job_log), interruption_(interruption) {}

  // A host's own files: those below `directory` of the tree.
  Result<void> add_tree(const Tree& tree, const std::string& directory, const std::string& host);
  // What another host staged.
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
