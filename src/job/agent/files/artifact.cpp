#include "agent/files/artifact.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"

namespace trainyard::agent {

std::optional<std::string> UnionNames::place(const std::string& name, bool is_directory,
                                             const std::string& host) {
  std::string placed;
  const auto parts = split(name, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool last = i + 1 == parts.size();
    const What what = last && !is_directory ? What::file : What::directory;
    std::string candidate = (placed.empty() ? "" : placed + "/") + std::string(parts[i]);
    if (const auto moved = moved_directories_.find(host + ":" + candidate);
        what == What::directory && moved != moved_directories_.end()) {
      candidate = moved->second;
    }
    auto found = taken_.find(candidate);
    const bool shared =
        found != taken_.end() && found->second == What::directory && what == What::directory;
    if (shared && last) return {};
    if (found != taken_.end() && !shared) {
      const std::string wanted = candidate;
      // Tries NAME.algo-2, NAME.algo-2.algo-2 ..: each is longer, so the loop ends.
      while (taken_.contains(candidate)) candidate += "." + host;
      if (what == What::directory) moved_directories_[host + ":" + wanted] = candidate;
      found = taken_.end();
    }
    if (found == taken_.end()) taken_[candidate] = what;
    placed = std::move(candidate);
  }
  return placed;
}

void JobLog::say(const std::string& text) {
  if (++lines_ <= kJobLogLinesMax) say_(text);
}

void JobLog::finish() {
  if (lines_ > kJobLogLinesMax) say_("and " + std::to_string(lines_ - kJobLogLinesMax) + " more");
  lines_ = 0;
}

Result<void> Artifact::add(TarEntry entry, const std::string& host, const Source& content) {
  TRY(interruption_.check());
  const auto placed = names_.place(entry.name, entry.type == TarEntry::Type::directory, host);
  if (!placed) return {};
  if (*placed != entry.name && entry.type != TarEntry::Type::directory) {
    job_log_.say(place_ + "/" + entry.name + " of " + host + " was kept as " + *placed +
                 ": another host has that name too");
  }
  entry.name = *placed;
  return tar_.add(entry, content);
}

Result<void> Artifact::add_tree(const Tree& tree, const std::string& directory,
                                const std::string& host) {
  return tree.walk(directory, [&](const Tree::Entry& found) -> Result<void> {
    TarEntry entry;
    entry.name = found.path;
    entry.mode = found.status.st_mode & 0777;
    entry.modified = found.status.st_mtime;
    const std::string where = place_ + "/" + found.path;
    if (found.too_deep) {
      job_log_.say(where + " was left out: it lies more than " + std::to_string(kTreeDepthMax) +
                   " directories deep");
      return {};
    }
    if (S_ISDIR(found.status.st_mode)) {
      entry.type = TarEntry::Type::directory;
      return add(std::move(entry), host, {});
    }
    if (S_ISLNK(found.status.st_mode)) {
      entry.type = TarEntry::Type::link;
      entry.link_target = found.link_target;
      // Frameworks make absolute links to their own files ("latest" -> /opt/ml/model/step-9). These
      // are treated as relative links.
      if (entry.link_target.starts_with(place_ + "/")) {
        std::string up;
        for (const char character : entry.name) up += character == '/' ? "../" : "";
        entry.link_target = up + entry.link_target.substr(place_.size() + 1);
      }
      if (!link_stays_inside(entry.name, entry.link_target)) {
        job_log_.say(where + " was left out: it is a link that leads out of " + place_);
        return {};
      }
      return add(std::move(entry), host, {});
    }
    if (!S_ISREG(found.status.st_mode)) {
      job_log_.say(where + " was left out: it is neither a file nor a directory nor a link");
      return {};
    }
    const auto file = tree.open_file((directory.empty() ? "" : directory + "/") + found.path);
    if (!file) {
      job_log_.say(where + " was left out: " + file.error().message);
      return {};
    }
    entry.bytes = static_cast<uint64_t>(found.status.st_size);
    return add(std::move(entry), host, [&](std::span<char> buffer) -> Result<size_t> {
      TRY(interruption_.check());
      for (;;) {
        const ssize_t got = ::read(file->descriptor(), buffer.data(), buffer.size());
        if (got >= 0) return static_cast<size_t>(got);
        if (errno != EINTR) return from_errno("reading " + where);
      }
    });
  });
}

Result<void> Artifact::add_tar(Source bytes, const std::string& host) {
  const auto reader = TRY(read_tar(std::move(bytes)));
  while (auto entry = TRY(reader->next())) {
    TRY(add(std::move(*entry), host, [&](std::span<char> buffer) -> Result<size_t> {
      TRY(interruption_.check());
      return reader->read(buffer);
    }));
  }
  return {};
}

}  // namespace trainyard::agent
