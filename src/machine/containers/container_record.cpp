#include "containers/container_record.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "containers/cgroup.hpp"
#include "containers/container_plan.hpp"
#include "containers/id_range.hpp"
#include "containers/rootless_sandbox.hpp"
#include "os/files.hpp"
#include "os/process_identity.hpp"

namespace trainyard::containers {
namespace {

// A record is "PID START IDS", where IDS is the first id, as in release 0.1.0. A later form will
// start with 'v'.
constexpr char kLaterForm = 'v';

std::string record_path(const std::string& name) { return run_directory() + "/containers/" + name; }

struct ContainerRecord {
  os::ProcessIdentity starter;
  uint32_t first_id = 0;
};

std::optional<ContainerRecord> read_record(const std::string& name) {
  const auto text = os::read_file(record_path(name), 64 << 10);
  if (!text) return {};
  const auto members = split(*text, ' ');
  if (members.size() < 3) return {};
  const auto process = parse_int(members[0]), started = parse_int(members[1]),
             ids = parse_int(members[2]);
  if (!process || !started) return {};
  return ContainerRecord{{pid_t(*process), uint64_t(*started)}, ids ? uint32_t(*ids) : 0};
}

}  // namespace

Result<void> write_record(const std::string& name) {
  const auto ours = os::own_identity();
  if (!ours) return internal("reading this process's identity: not found in /proc");
  TRY(os::make_directories(run_directory() + "/containers", 0755));
  return os::write_file(record_path(name),
                        std::to_string(ours->process) + " " + std::to_string(ours->started) + " ",
                        0600);
}

Result<void> add_ids(const std::string& name, uint32_t first_id) {
  const std::string text = std::to_string(first_id);
  const os::File record(::open(record_path(name).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!record || ::write(record.descriptor(), text.data(), text.size()) != ssize_t(text.size()))
    return from_errno("writing " + record_path(name));
  return ok();
}

bool starter_is_alive(const std::string& name) {
  // Written by a later release, which removes it.
  if (const auto text = os::read_file(record_path(name), 64 << 10);
      text && text->starts_with(kLaterForm))
    return true;
  const auto record = read_record(name);
  return record && os::is_alive(record->starter);
}

bool has_container(const std::string& name) {
  return os::exists(record_path(name)) || Cgroup::named(name).exists();
}

void remove_record(const std::string& name) {
  if (const auto removed = os::remove_all(runtime_root() + "/" + name); !removed)
    log(Level::warning, "containers", "cleaning up after a container: " + removed.error().message);
  if (const auto record = read_record(name)) release_id_range(name, record->first_id);
  ::unlink(record_path(name).c_str());
}

}  // namespace trainyard::containers
