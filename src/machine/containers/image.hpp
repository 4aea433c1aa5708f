// Fetches and unpacks container images, once for all containers that use them.
//
// A source is "oci:PATH:TAG" (an OCI layout on this machine), "containers-storage:NAME" (the
// storage of podman and buildah) or "docker://HOST[:PORT]/NAME:TAG" (a registry; "@sha256:.."
// instead of the tag pins the digest). skopeo fetches it, with its configuration of registries and
// logins (registries.conf, auth.json, certs.d); a registry on a loopback address may use plain
// HTTP. Images and layers are stored by their digests below an images directory. They are written
// under a temporary name and then renamed, so they are complete or absent. Hosts that need the same
// image at once wait for the first:
//
//   IMAGES/sha256-<digest>/root/       the lower layer of containers, which is never written
//   IMAGES/sha256-<digest>/image.json  the config of the image, and its layers
//   IMAGES/sha256-<digest>.used/       a locked file for each current user of the image
//   IMAGES/layers/<digest>/            an unpacked layer (image_layer.hpp); roots are hard links to
//                                      its files
//   IMAGES/blobs/sha256/<digest>       a layer as fetched from its registry
//   IMAGES/names/                      the last digest of each name in a registry, used while the
//                                      registry is unavailable
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no such
// image, no tool), invalid or corrupt (not an image, or its digest differs), unavailable (the
// registry), exhausted (disk), cancelled (took too long, or the caller stopped it).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "containers/oci_image.hpp"
#include "os/files.hpp"

namespace trainyard::containers {

// The details of errors of unpack_image().
enum class ImageFault {
  missing,       // not_found: no such name or tag
  refused,       // denied: the registry requires a login, or another one
  unreachable,   // unavailable: the registry does not answer
  tool_missing,  // not_found: skopeo is not installed
};

struct UnpackedImage {
  std::string root;    // directory
  std::string digest;  // "sha256:.."
  ImageConfig config;
  uint32_t user_id = 0;  // config.user, looked up in the image's /etc/passwd and /etc/group
  uint32_t group_id = 0;
  std::optional<os::FileLock> use;  // while it is held, trim_images() keeps the image
};

// The progress of a pull. Bytes are those to fetch: compressed layers that this machine does not
// have.
struct PullProgress {
  // waiting: another host fetches the same image
  enum class Doing { waiting, downloading, unpacking };
  Doing doing = Doing::waiting;
  uint64_t bytes = 0;
  uint64_t bytes_total = 0;  // 0: unknown
};
// Called several times a second, from the caller's thread; returns false to stop the pull.
using PullWatch = std::function<bool(const PullProgress&)>;

// Formats "Downloading the training image: 120 of 480 MiB".
std::string format_progress(const PullProgress& progress);

// The rights with which an image is fetched.
struct ImageRights {
  struct Login {
    std::string host, username, password;
  };
  // The login at the registry; unset: the login in the files of this machine. Images fetched with a
  // login are stored in a directory of that login, IMAGES.private/<name>/, with the same structure.
  // They are not used for other logins, not even layers with the same digest. The password is in no
  // argument and no message.
  std::optional<Login> login = {};
  // An OCI layout below one of these is opened beneath it: symbolic links on the path or in the
  // layout are not followed.
  std::vector<std::string> oci_directories = {};
};

Result<UnpackedImage> unpack_image(const std::string& source, const std::string& images_directory,
                                   const PullWatch& watch = {}, const ImageRights& rights = {});

// Looks up a user ("1000", "nobody" or "1000:users") in an unpacked image or, if `root` is "", on
// this machine. Errors: invalid, if there is no such user, or a container cannot have its id.
Result<UserIds> user_of(const std::string& root, const std::string& user);

// Removes unused images, the longest unused first, until the directory and those of logins have at
// most `bytes_max`, and then unused layers and blobs. Returns the remaining bytes. Layers are not
// removed while an image is being fetched.
Result<uint64_t> trim_images(const std::string& images_directory, uint64_t bytes_max);

}  // namespace trainyard::containers
