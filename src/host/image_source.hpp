// Where images come from, through skopeo and this machine's files: what an image is, what it consists of, and fetching
// it. For image.cpp only; its letter says which sources there are and what goes wrong.
//
// Threads: callable from anywhere.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "host/oci_image.hpp"

namespace trainyard::host {

// Errors: invalid, when it is no source that we know.
Result<void> check_source(const std::string& source);

// "sha256:" and 64 hex digits.
std::string sha256(std::string_view bytes);

// The digest by which the image is known here, without fetching it.
Result<std::string> digest_of(const std::string& source);

// Its layers, the lowest first, as the source has them; empty where only fetching tells.
Result<std::vector<ImageReference>> layers_of(const std::string& source);

// A layout holds one image, called "image"; its blobs lie in BLOBS/sha256/, where those that are there already are not
// fetched again. `watch` as Command::watch.
struct LayoutPlace {
  std::string directory;
  std::string blobs;
};
Result<void> fetch(const std::string& source, const LayoutPlace& to, const std::function<bool()>& watch);
// Bytes that fetch() has written so far and that are no blob yet.
uint64_t bytes_on_the_way(const LayoutPlace& to);

// Of the fetched image.
struct DescribedImage {
  std::string digest;  // of its manifest
  ImageConfig config;
  std::vector<ImageReference> layers;
};
Result<DescribedImage> describe(const LayoutPlace& layout);

// The error in words of the image, and of the kind that it is.
Error explained(Error error, const std::string& source);

}  // namespace trainyard::host
