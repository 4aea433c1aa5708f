#include "gradients/fusion/batches.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace trainyard::gradients {
namespace {

bool fusible(const Signature& a, const Signature& b) {
  if (a.operation != b.operation || a.set != b.set) return false;
  switch (a.operation) {
    case Operation::allreduce:
    case Operation::reduce_scatter:
      return a.type == b.type && a.reduction == b.reduction && a.prescale == b.prescale &&
             a.postscale == b.postscale && a.compression == b.compression;
    case Operation::adasum:
      return a.type == b.type && a.prescale == b.prescale && a.postscale == b.postscale;
    case Operation::broadcast:  // bytes, whatever their type
      return a.root == b.root;
    case Operation::all_gather:
      return true;
    default:
      return false;
  }
}

}  // namespace

uint64_t bytes_of(const Agreement& agreement) {
  const Signature& signature = agreement.signature;
  if (signature.operation == Operation::all_gather) {
    const uint64_t rows =
        std::accumulate(agreement.rows.begin(), agreement.rows.end(), uint64_t{0});
    return rows * signature.row_elements() * collectives::bytes_of(signature.type);
  }
  return signature.elements() * collectives::bytes_of(signature.type);
}

std::vector<Batch> batches_of(std::vector<Agreement> ready, const FusionLimits& fusing) {
  const uint64_t fusion_bytes = fusing.fusion_bytes;
  std::stable_sort(ready.begin(), ready.end(), [](const Agreement& a, const Agreement& b) {
    return a.signature.priority > b.signature.priority;
  });
  std::vector<Batch> batches;
  std::vector<bool> taken(ready.size());
  for (size_t first = 0; first < ready.size(); ++first) {
    if (taken[first]) continue;
    Batch& batch = batches.emplace_back();
    const Signature signature = ready[first].signature;
    uint64_t bytes = bytes_of(ready[first]);
    batch.parts.push_back(std::move(ready[first]));
    if (bytes > fusing.tensor_bytes_max || (fusing.groups_only && signature.group.empty()))
      continue;
    for (size_t next = first + 1; next < ready.size() && bytes < fusion_bytes; ++next) {
      if (taken[next] || !fusible(signature, ready[next].signature)) continue;
      if (fusing.groups_only && ready[next].signature.group != signature.group) continue;
      const uint64_t more = bytes_of(ready[next]);
      if (more > fusing.tensor_bytes_max || more > fusion_bytes - bytes) continue;
      bytes += more;
      taken[next] = true;
      batch.parts.push_back(std::move(ready[next]));
    }
  }
  return batches;
}

}  // namespace trainyard::gradients
