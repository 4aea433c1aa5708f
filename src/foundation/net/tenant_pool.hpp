// Runs work that may block on a pool of threads, of which no tenant gets more than a share.
//
// Work of a tenant whose share is in use waits in order, without a thread, behind that tenant's own
// work only.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work given, queued work
// included.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "base/thread_safety.hpp"
#include "os/thread_pool.hpp"

namespace trainyard::net {

class TenantPool {
 public:
  // Requires: both at least 1.
  TenantPool(size_t threads_max, size_t threads_per_tenant_max)
      : per_tenant_max_(threads_per_tenant_max), pool_(threads_max) {}
  TenantPool(const TenantPool&) = delete;

  // The caller limits the number of waiting items. False when there is no thread and none could be
  // made: the work is dropped. Requires: `work` does not throw.
  bool run(const std::string& tenant, std::function<void()> work);

  struct Load {
    size_t running = 0;  // started, or waiting for a thread of the pool
    size_t waiting = 0;  // for their tenant's share
  };
  Load load() const;

 private:
  struct Tenant {
    size_t running = 0;
    std::deque<std::function<void()>> waiting;
  };

  bool start(const std::string& tenant, std::function<void()> work);
  void finished(const std::string& tenant);

  const size_t per_tenant_max_;
  mutable Mutex mutex_;
  std::map<std::string, Tenant> tenants_ GUARDED_BY(mutex_);  // tenants with work
  // last: its destructor runs the waiting work
  os::ThreadPool pool_;
};

}  // namespace trainyard::net
