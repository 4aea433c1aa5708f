// Runs work that may block on a pool of threads, of which no tenant gets more than a share.
//
// Work of a tenant whose share is in use waits in order, without a thread, behind that tenant's own work only.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work given, queued work included.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "os/thread_pool.hpp"

namespace trainyard::net {

class TenantPool {
 public:
  // Requires: both at least 1.
  TenantPool(size_t threads_max, size_t threads_per_tenant_max)
      : per_tenant_max_(threads_per_tenant_max), pool_(threads_max) {}
  TenantPool(const TenantPool&) = delete;

  // What bounds how much may wait is the caller's own limit. False when no thread could be made and none is there to
  // do it: the work is dropped. Requires: `work` does not throw.
  bool run(const std::string& tenant, std::function<void()> work);

  struct Load {
    size_t running = 0;  // begun, or waiting for a thread of the pool
    size_t waiting = 0;  // for the share of their tenant
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
  mutable std::mutex mutex_;
  std::map<std::string, Tenant> tenants_;  // guarded by mutex_; those with work
  os::ThreadPool pool_;                    // last: its destructor runs what waits
};

}  // namespace trainyard::net
