#include "algorithms/image_classification/order.hpp"

#include <algorithm>
#include <numeric>

#include "base/bytes/little_endian.hpp"
#include "base/check.hpp"
#include "base/fnv.hpp"
#include "base/random.hpp"

namespace trainyard::algorithms {
namespace {

constexpr size_t kNumberBytes = 8;

}  // namespace

std::string encode(const HostImages& images) {
  std::string bytes;
  append_little_endian(bytes, images.count, kNumberBytes);
  append_little_endian(bytes, images.digest, kNumberBytes);
  return bytes;
}

Result<Shares> decode_shares(const std::vector<std::string>& lists, int rank,
                             const std::vector<std::string>& hosts) {
  CHECK(lists.size() == hosts.size() && size_t(rank) < lists.size(), "each rank is on a host");
  Shares shares{.rank = rank, .ranks = int(lists.size())};
  for (size_t i = 0; i < lists.size(); ++i) {
    if (lists[i].size() != 2 * kNumberBytes)
      return corrupt("host " + hosts[i] + " sent no list of images");
    const uint64_t count = little_endian(std::string_view(lists[i]).substr(0, kNumberBytes));
    if (count == 0) return invalid("no images on host " + hosts[i]);
    if (count > kImagesMax - std::min(kImagesMax, shares.all))
      return exhausted("more than " + std::to_string(kImagesMax) + " images");
    shares.replicated = shares.replicated && lists[i] == lists[0];
    shares.all += count;
    if (int(i) == rank) shares.own = count;
  }
  if (shares.replicated) shares.all = shares.own;
  return shares;
}

int64_t steps_of_epoch(const Shares& shares, int64_t batch_size, int64_t parts) {
  const auto images = uint64_t(batch_size) * uint64_t(parts) * uint64_t(shares.ranks);
  return int64_t(std::max<uint64_t>(1, (shares.all + images - 1) / images));
}

EpochOrder::EpochOrder(const Shares& shares, uint64_t seed, int64_t epoch)
    : shares_(shares), images_(shares.own) {
  std::iota(images_.begin(), images_.end(), 0u);
  const uint64_t own_seed = shares.replicated ? 0 : uint64_t(shares.rank) + 1;
  SeededRandom random(seed_of(seed, uint64_t(epoch), own_seed));
  for (size_t left = images_.size(); left > 1; --left)
    std::swap(images_[left - 1], images_[random.below(left)]);
}

std::vector<uint32_t> EpochOrder::batch(int64_t step, int64_t part, int64_t parts,
                                        int64_t batch_size) const {
  CHECK(part < parts && !images_.empty(), "a rank has images and parts");
  const int64_t parts_of_all = shares_.replicated ? parts * shares_.ranks : parts;
  const int64_t number = shares_.replicated ? part + parts * shares_.rank : part;
  uint64_t at = uint64_t(step * parts_of_all + number) * uint64_t(batch_size);
  std::vector<uint32_t> images;
  for (int64_t i = 0; i < batch_size; ++i) images.push_back(images_[at++ % images_.size()]);
  return images;
}

std::vector<uint32_t> scored_images(const Shares& shares) {
  std::vector<uint32_t> images;
  const auto first = shares.replicated ? uint32_t(shares.rank) : 0;
  const auto step = shares.replicated ? uint32_t(shares.ranks) : 1;
  for (uint64_t image = first; image < shares.own; image += step) images.push_back(uint32_t(image));
  return images;
}

uint64_t seed_of(uint64_t seed, uint64_t epoch, uint64_t image) {
  uint64_t hash = kFnvBasis;
  for (const uint64_t each : {seed, epoch, image})
    for (size_t byte = 0; byte < kNumberBytes; ++byte)
      hash = fnv1a_step(hash, each >> (8 * byte) & 0xff);
  return hash;
}

}  // namespace trainyard::algorithms
