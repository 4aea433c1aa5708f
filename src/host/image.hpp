// Container images, unpacked once and shared.
//
// A source is "oci:PATH:TAG" (an OCI layout on this machine) or "containers-storage:NAME" (podman's and
// buildah's). Its root is unpacked below an images directory under the digest of its manifest, beside and
// then renamed, so it is there whole or not at all, and several hosts that want it at once wait for the
// first:
//
//   IMAGES/sha256-<digest>/root/       what containers put their writable layer over: never written to
//   IMAGES/sha256-<digest>/image.json  what the image says of itself
//
// Threads: callable from anywhere, from several processes at once. Errors: not_found (no such image, no
// tool), invalid or corrupt (it is no image, or not what its digest says), exhausted (disk), cancelled (took
// too long).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "host/oci_image.hpp"

namespace trainyard::host {

struct UnpackedImage {
  std::string root;    // directory
  std::string digest;  // "sha256:.."
  ImageConfig config;
  uint32_t user_id = 0;  // config.user, looked up in the image's own /etc/passwd and /etc/group
  uint32_t group_id = 0;
};

Result<UnpackedImage> unpack_image(const std::string& source, const std::string& images_directory);

}  // namespace trainyard::host
