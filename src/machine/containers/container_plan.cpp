#include "containers/container_plan.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

#include "containers/rootless_sandbox.hpp"

namespace trainyard::containers {
namespace {

using What = PlanStep::What;

// Returns true if mount `index` was included with an earlier one, because it is below that one's
// source.
bool came_along(const std::vector<Mount>& mounts, size_t index) {
  const Mount& each = mounts[index];
  for (size_t i = 0; i < index; i++) {
    const std::string& above = mounts[i].source;
    if (above.empty() || above == "/" || each.source.size() <= above.size()) continue;
    const std::string rest = each.source.substr(above.size());
    if (rest[0] == '/' && each.source.starts_with(above) &&
        each.destination == mounts[i].destination + rest)
      return true;
  }
  return false;
}

constexpr unsigned kHarmless = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

// Attaches a mount of `source`, with or without the mounts below it, with these attributes at
// `target`. Returns 0 or an error number.
int attach(const char* source, const char* target, uint64_t attributes, int user_namespace,
           bool with_all_below = false) {
  const unsigned deep = with_all_below ? AT_RECURSIVE : 0;
  const int mount =
      int(::syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep));
  if (mount < 0) return errno;
  mount_attr wanted = {};
  wanted.attr_set = attributes;
  if (user_namespace >= 0) {
    wanted.attr_set |= MOUNT_ATTR_IDMAP;
    wanted.userns_fd = uint64_t(user_namespace);
  }
  int error_number = 0;
  if (::syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | deep, &wanted, sizeof wanted) != 0 ||
      ::syscall(SYS_move_mount, mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
    error_number = errno;
  ::close(mount);
  return error_number;
}

bool enter_cgroup(const char* processes) {
  const int file = ::open(processes, O_WRONLY | O_CLOEXEC);
  return file >= 0 && ::write(file, "0", 1) == 1;
}

bool enter_network(const char* network_namespace) {
  const int file = ::open(network_namespace, O_RDONLY | O_CLOEXEC);
  return file >= 0 && ::setns(file, CLONE_NEWNET) == 0 && ::close(file) == 0;
}

// Returns true for devices of the machine's memory: /dev/mem, kmem, port, kmsg, oldmem.
bool is_machine_memory(dev_t device) {
  const unsigned minor_number = minor(device);
  return major(device) == 1 && (minor_number == 1 || minor_number == 2 || minor_number == 4 ||
                                minor_number == 11 || minor_number == 12);
}

// Checks a device for a container. Not allowed: a link, which may lead to any file; a disk, whose
// blocks are the machine's files; a part of a GPU that others use too.
Result<void> check_device(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0)
    return from_errno("reading the status of the device file " + path);
  if (!S_ISCHR(status.st_mode) || is_machine_memory(status.st_rdev))
    return denied("invalid device file '" + path +
                  "': it must be a character device, not a link, and not memory of the machine");
  if (path.starts_with("/dev/nvidia-caps/"))
    return denied("invalid device file '" + path +
                  "': part of a GPU; containers get whole GPUs only");
  return ok();
}

}  // namespace

std::string runtime_root() { return run_directory() + "/runtime"; }

bool can_map(const std::string& path, int user_namespace) {
  // Binds the directory onto itself; the mount ends with the mount namespace.
  errno = attach(path.c_str(), path.c_str(), 0, user_namespace);
  return errno == 0;
}

int ChildPlan::carry_out(size_t index) const {
  const PlanStep& step = steps_[index];
  const char* first = step.first.c_str();
  const char* second = step.second.c_str();
  const int user_namespace = step.user_namespace >= 0 ? step.user_namespace : user_namespace_;
  bool well = false;
  switch (step.what) {
    case What::enter_cgroup:
      well = enter_cgroup(first);
      break;
    case What::private_mounts:
      // Slave instead of private, so that unmounts on the machine do not fail because of this
      // namespace.
      well = ::unshare(CLONE_NEWNS) == 0 &&
             ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0;
      break;
    case What::unmount:
      well = ::umount2(first, MNT_DETACH) == 0;
      break;
    case What::enter_network:
      well = enter_network(first);
      break;
    case What::mount_tmpfs:
      well = ::mount("tmpfs", first, "tmpfs", MS_NOSUID | MS_NODEV, second) == 0;
      break;
    case What::mount_sysfs:
      well = ::mount("sysfs", first, "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
                     nullptr) == 0;
      break;
    case What::mount_overlay:
      // nodev: an image may contain device files.
      well = ::mount("overlay", first, "overlay", MS_NOSUID | MS_NODEV, second) == 0;
      break;
    case What::make_directory:
      well = ::mkdir(first, step.mode) == 0 && ::chmod(first, step.mode) == 0;
      break;
    case What::make_file: {
      const int file = ::open(first, O_WRONLY | O_CREAT | O_CLOEXEC, step.mode);
      well = file >= 0 && ::close(file) == 0;
      break;
    }
    case What::make_link:
      well = ::symlink(second, first) == 0;
      break;
    case What::give:
      well = !ids_ || !ids_->shifted() || ::lchown(first, ids_->first, ids_->first) == 0;
      break;
    case What::bind:
      return attach(second, first, step.mode, -1);
    case What::bind_all:
      return attach(second, first, step.mode, -1, true);
    case What::bind_mapped:
      return attach(second, first, step.mode, user_namespace);
    case What::bind_mapped_or_not: {
      const int error_number = attach(second, first, step.mode, user_namespace);
      return error_number == 0 ? 0 : attach(second, first, step.mode, -1);
    }
  }
  return well ? 0 : errno;
}

Error ChildPlan::explain(size_t index, int error_number) const {
  static constexpr const char* kDoing[] = {"entering the cgroup ",
                                           "making a mount namespace",
                                           "unmounting ",
                                           "entering the network ",
                                           "mounting a tmpfs at ",
                                           "mounting a sysfs at ",
                                           "mounting an overlay at ",
                                           "making the directory ",
                                           "making the file ",
                                           "making the link ",
                                           "changing the owner to the container's root of ",
                                           "binding ",
                                           "binding ",
                                           "binding ",
                                           "binding "};
  const PlanStep& failed = steps_[index];
  const bool binds = failed.what >= What::bind;
  return from_errno(kDoing[size_t(failed.what)] + (binds ? failed.second : failed.first),
                    error_number);
}

namespace {

// Plans the root of a container without an image: a tmpfs with directories, links and binds of the
// machine's system.
void add_system_root(ChildPlan& plan, const Bundle& bundle, const std::string& root, bool shifted) {
  plan.add({What::mount_tmpfs, root, "mode=0755," + tmpfs_limits(bundle.root_bytes)});
  plan.add({What::give, root});
  for (const auto& step : bundle.root) {
    const std::string path = root + "/" + step.path;
    switch (step.kind) {
      case RootStep::Kind::directory:
        plan.add({What::make_directory, path, "", step.mode});
        break;
      case RootStep::Kind::file:
        plan.add({What::make_file, path, "", step.mode});
        break;
      case RootStep::Kind::link:
        plan.add({What::make_link, path, step.target});
        break;
      case RootStep::Kind::bind:
        // Not mapped to the container's ids: its root has rights only over its own files, so files
        // of this machine that only root may read stay unreadable.
        plan.add({in_rootless_sandbox() ? What::bind_all : What::bind, path, step.target,
                  MOUNT_ATTR_RDONLY | kHarmless});
        continue;
    }
    if (shifted) plan.add({What::give, path});
  }
}

void add_overlay(ChildPlan& plan, const ContainerSpec& spec, const Stage& stage, bool shifted) {
  std::string lower = spec.image_root;
  if (shifted) {
    lower = stage.image();
    plan.add({What::make_directory, lower, "", 0755});
    plan.add({What::bind_mapped, lower, spec.image_root, MOUNT_ATTR_RDONLY | kHarmless, true});
    plan.add({What::give, layer_directory_of(spec) + "/" + kUpperDirectory});
  }
  plan.add({What::mount_overlay, stage.root(),
            "lowerdir=" + lower + ",upperdir=" + layer_directory_of(spec) + "/" + kUpperDirectory +
                ",workdir=" + layer_directory_of(spec) + "/" + kWorkDirectory +
                // The overlay marks removed files in attributes that only root of the machine may
                // set, or (userxattr) in others.
                (in_rootless_sandbox() ? ",userxattr" : ""),
            0, true});
}

// Binds a file or directory of the machine into the stage.
Result<void> stage_one(ChildPlan& plan, const std::string& source, const std::string& target,
                       What what, unsigned attributes, int mapped_by = -1) {
  struct stat status;
  if (::stat(source.c_str(), &status) != 0) return from_errno("reading the status of " + source);
  if (S_ISDIR(status.st_mode))
    plan.add({What::make_directory, target, "", 0755});
  else
    plan.add({What::make_file, target, "", 0644});
  plan.add({what, target, source, attributes, false, mapped_by});
  return ok();
}

Result<void> add_mounts(ChildPlan& plan, const ContainerSpec& spec, const Stage& stage,
                        bool shifted, const std::vector<int>& identity_namespaces) {
  for (size_t i = 0; i < spec.mounts.size(); i++) {
    const Mount& each = spec.mounts[i];
    if (each.source.empty()) continue;
    // A read-only mount works with the rights of the overflow user; a writable one needs an owner
    // in the container. Included mounts may be of file systems that cannot be mapped, such as FUSE.
    const What what = in_rootless_sandbox()                          ? What::bind_all
                      : !shifted || each.set_owner                   ? What::bind
                      : each.read_only || came_along(spec.mounts, i) ? What::bind_mapped_or_not
                                                                     : What::bind_mapped;
    TRY(stage_one(plan, each.source, stage.mount(i), what,
                  kHarmless | (each.read_only ? MOUNT_ATTR_RDONLY : 0),
                  i < identity_namespaces.size() ? identity_namespaces[i] : -1));
  }
  for (size_t i = 0; i < spec.devices.size(); i++) {
    TRY(check_device(spec.devices[i]));
    TRY(stage_one(plan, spec.devices[i], stage.device(i), What::bind,
                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
  }
  return ok();
}

}  // namespace

Result<ChildPlan> make_plan(const ContainerSpec& spec, const Bundle& bundle, const Stage& stage,
                            const Cgroup& cgroup, RootKind kind, std::optional<IdRange> ids,
                            int user_namespace, const std::vector<int>& identity_namespaces) {
  ChildPlan plan(ids, user_namespace);
  const bool shifted = ids && ids->shifted();
  for (const auto& entrance : cgroup.entrances()) plan.add({What::enter_cgroup, entrance});
  plan.add({What::private_mounts});
  // crun starts only on pure v1 or pure v2. Nothing changes outside of this namespace.
  if (const std::string& unified = cgroup_layout().hybrid_unified; !unified.empty()) {
    // A namespace cannot unmount the mounts of a namespace with more rights, but it can cover them.
    if (in_rootless_sandbox())
      plan.add({What::mount_tmpfs, unified.substr(0, unified.rfind('/')), "mode=0755,size=4k"});
    else
      plan.add({What::unmount, unified});
  }
  if (!spec.network_namespace.empty()) plan.add({What::enter_network, spec.network_namespace});

  // Names only, some hundred.
  plan.add({What::mount_tmpfs, stage.path, "mode=0755," + tmpfs_limits(1 << 20)});
  const std::string root = stage.root();
  plan.add({What::make_directory, root, "", 0755});
  switch (kind) {
    case RootKind::tmpfs:
      add_system_root(plan, bundle, root, shifted);
      break;
    case RootKind::overlay:
      add_overlay(plan, spec, stage, shifted);
      break;
    case RootKind::copy:
      plan.add({shifted ? What::bind_mapped : What::bind, root,
                spec.directory + "/" + kCopyDirectory, kHarmless, true});
      break;
  }
  TRY(add_mounts(plan, spec, stage, shifted, identity_namespaces));
  if (!spec.network_namespace.empty()) {
    plan.add({What::make_directory, stage.sys(), "", 0755});
    plan.add({What::mount_sysfs, stage.sys()});
  }
  return plan;
}

void add_runtime(ChildPlan& plan, const Stage& stage, const std::string& runtime) {
  plan.add({What::make_file, stage.runtime(), "", 0755});
  plan.add({in_rootless_sandbox() ? What::bind_all : What::bind, stage.runtime(), runtime,
            MOUNT_ATTR_RDONLY | kHarmless});
}

}  // namespace trainyard::containers
