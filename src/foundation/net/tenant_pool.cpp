#include "net/tenant_pool.hpp"

#include <utility>

#include "base/check.hpp"
#include "base/thread_safety.hpp"

namespace trainyard::net {

bool TenantPool::run(const std::string& tenant, std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    Tenant& mine = tenants_[tenant];
    if (mine.running >= per_tenant_max_) {
      mine.waiting.push_back(std::move(work));
      return true;
    }
    mine.running++;
  }
  if (start(tenant, std::move(work))) return true;
  // Starts work that was queued meanwhile.
  finished(tenant);
  return false;
}

bool TenantPool::start(const std::string& tenant, std::function<void()> work) {
  return pool_.run([this, tenant, work = std::move(work)]() mutable {
    work();
    work = nullptr;
    finished(tenant);
  });
}

void TenantPool::finished(const std::string& tenant) {
  std::function<void()> next;
  {
    const MutexLock lock(mutex_);
    const auto found = tenants_.find(tenant);
    CHECK(found != tenants_.end() && found->second.running > 0,
          "work that ends was counted when it began");
    Tenant& mine = found->second;
    if (mine.waiting.empty()) {
      if (--mine.running == 0) tenants_.erase(found);
      return;
    }
    next = std::move(mine.waiting.front());
    mine.waiting.pop_front();
  }
  // Queued in the pool, after work of other tenants, instead of running directly on this thread.
  if (!start(tenant, next)) {
    next();
    finished(tenant);
  }
}

TenantPool::Load TenantPool::load() const {
  const MutexLock lock(mutex_);
  Load load;
  for (const auto& [tenant, mine] : tenants_) {
    load.running += mine.running;
    load.waiting += mine.waiting.size();
  }
  return load;
}

}  // namespace trainyard::net
