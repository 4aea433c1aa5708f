// TenantPool runs blocking work on a pool of threads, of which each tenant gets at most a share.
//
// If the share of a tenant is in use, its work is queued in order, without a thread, and waits only
// for other work of the same tenant.
//
// Threads: run() from anywhere. Lifetime: the destructor waits for all work, including queued work.
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
  // Requires: both numbers are at least 1.
  TenantPool(size_t threads_max, size_t threads_per_tenant_max)
      : per_tenant_max_(threads_per_tenant_max), pool_(threads_max) {}
  TenantPool(const TenantPool&) = delete;

  // Runs or queues `work`; the caller limits the length of the queue. Returns false, and drops the
  // work, if there is no thread and none can be made. Requires: `work` does not throw.
  bool run(const std::string& tenant, std::function<void()> work);

  struct Load {
    size_t running = 0;  // started, or waiting for a thread of the pool
    size_t waiting = 0;  // wait for their tenant's share
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
  // the last member, because its destructor runs the queued work
  os::ThreadPool pool_;
};

}  // namespace trainyard::net
