#include "sdk/python/c10d/in_place.hpp"

#include <torch/extension.h>

#include <algorithm>
#include <utility>

#include "base/thread_safety.hpp"

namespace trainyard::sdk {

struct InPlaceRegistration::Lease {
  Mutex mutex;
  std::unique_ptr<collectives::InPlaceMemory> memory GUARDED_BY(mutex);

  void end() {
    const MutexLock lock(mutex);
    memory.reset();
  }
};

// Owner replaces the pointer of a storage, and frees the memory after it is private again.
struct InPlaceRegistration::Owner {
  at::DataPtr memory;
  std::shared_ptr<Lease> lease;

  static void free(void* owner) {
    const std::unique_ptr<Owner> owned(static_cast<Owner*>(owner));
    owned->lease->end();
  }
};

void InPlaceRegistration::note(collectives::Group& group, const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  c10::StorageImpl* const storage_impl = storage.unsafeGetStorageImpl();
  // Accepts only whole allocations of torch's own allocator: other memory (of numpy, of a file) has
  // other owners.
  if (storage.nbytes() < kBytesMin || tensor.nbytes() != storage.nbytes()) return;
  auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& each) {
    return each.storage._unsafe_get_target() == storage_impl;
  });
  if (known == known_.end()) {
    if (storage.data_ptr().get_deleter() != c10::GetAllocator(at::kCPU)->raw_deleter()) return;
    known_.erase(std::remove_if(known_.begin(), known_.end(),
                                [](const Known& each) { return each.storage.expired(); }),
                 known_.end());
    if (known_.size() == kKnownMax) return;
    known_.push_back({storage.getWeakStorageImpl(), 0, nullptr});
    known = known_.end() - 1;
  }
  if (++known->sightings != kSightingsMin) return;
  auto memory =
      group.register_in_place({static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()});
  if (!memory) return;  // it is copied as before
  auto owner = std::make_unique<Owner>();
  known->lease = owner->lease = std::make_shared<Lease>();
  owner->lease->memory = std::move(memory).value();
  void* const data = tensor.data_ptr();
  Owner* const kept = owner.get();
  kept->memory = storage_impl->set_data_ptr(
      at::DataPtr(data, owner.release(), &Owner::free, at::Device(at::kCPU)));
}

void InPlaceRegistration::end() {
  for (const Known& each : known_) {
    if (each.lease) each.lease->end();
  }
}

}  // namespace trainyard::sdk
