// Declares which mutex guards which member, in a form that clang checks while it compiles
// (-Wthread-safety, an error).
//
//   class Counter {
//    public:
//     void add(int amount) {
//       const MutexLock lock(mutex_);
//       total_ += amount;
//     }
//     void wait_for(int total) {
//       MutexLock lock(mutex_);
//       changed_.wait(lock, [&]() REQUIRES(mutex_) { return total_ >= total; });
//     }
//
//    private:
//     Mutex mutex_;
//     ConditionVariable changed_;
//     int total_ GUARDED_BY(mutex_) = 0;
//   };
//
// The mutexes of libstdc++ have no such attributes, hence the types below. They add neither a
// member nor a call to the standard types. g++ ignores the attributes. Constructors and destructors
// are not checked.
//
// Threads: Mutex, SharedMutex and ConditionVariable are callable from anywhere; a lock is confined
// to one thread.
// Errors:  none. Lifetime: a mutex outlives its locks.
#pragma once

#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#if defined(__clang__)
#define THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define THREAD_SAFETY(attribute)
#endif

// After a member: it is read and written only while the mutex is held.
#define GUARDED_BY(mutex) THREAD_SAFETY(guarded_by(mutex))
// After a pointer member: what it points to is guarded; the pointer itself is not.
#define PT_GUARDED_BY(mutex) THREAD_SAFETY(pt_guarded_by(mutex))
// After a function or the () of a lambda: the caller holds the mutexes.
#define REQUIRES(...) THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) THREAD_SAFETY(requires_shared_capability(__VA_ARGS__))
// After a function: the caller does not hold the mutexes, because the function locks them.
#define EXCLUDES(...) THREAD_SAFETY(locks_excluded(__VA_ARGS__))
// After a function: it locks or unlocks the mutexes; without arguments, this object.
#define ACQUIRE(...) THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) THREAD_SAFETY(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) THREAD_SAFETY(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) THREAD_SAFETY(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) THREAD_SAFETY(release_generic_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
// Between `class` and its name.
#define CAPABILITY(name) THREAD_SAFETY(capability(name))
#define SCOPED_CAPABILITY THREAD_SAFETY(scoped_lockable)
// After a function that the analysis cannot follow; a comment gives the reason.
#define NO_THREAD_SAFETY_ANALYSIS THREAD_SAFETY(no_thread_safety_analysis)

namespace trainyard {

// A std::mutex.
class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  bool try_lock() TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until it goes out of scope; may be unlocked and locked again in between.
class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  // Requires: the caller has locked it, by try_lock().
  MutexLock(Mutex& mutex, std::adopt_lock_t locked) REQUIRES(mutex) : lock_(mutex.mutex_, locked) {}
  MutexLock(const MutexLock&) = delete;
  ~MutexLock() RELEASE() = default;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

 private:
  friend class ConditionVariable;
  std::unique_lock<std::mutex> lock_;
};

// Releases a mutex that the caller holds until it goes out of scope, for functions that are called
// with it held.
class SCOPED_CAPABILITY MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& mutex) RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  // RELEASE(): the analysis releases this object, and regards the mutex as held again.
  ~MutexUnlock() RELEASE() { mutex_.lock(); }

 private:
  Mutex& mutex_;
};

// A std::condition_variable. The mutex of the lock is held while a predicate runs.
class ConditionVariable {
 public:
  ConditionVariable() = default;
  ConditionVariable(const ConditionVariable&) = delete;

  void notify_one() { changed_.notify_one(); }
  void notify_all() { changed_.notify_all(); }

  template <class... Predicate>
  void wait(MutexLock& lock, Predicate&&... predicate) {
    changed_.wait(lock.lock_, std::forward<Predicate>(predicate)...);
  }
  template <class Duration, class... Predicate>
  auto wait_for(MutexLock& lock, const Duration& duration, Predicate&&... predicate) {
    return changed_.wait_for(lock.lock_, duration, std::forward<Predicate>(predicate)...);
  }
  template <class Instant, class... Predicate>
  auto wait_until(MutexLock& lock, const Instant& instant, Predicate&&... predicate) {
    return changed_.wait_until(lock.lock_, instant, std::forward<Predicate>(predicate)...);
  }

 private:
  std::condition_variable changed_;
};

// A std::shared_mutex: one writer, or many readers.
class CAPABILITY("shared_mutex") SharedMutex {
 public:
  SharedMutex() = default;
  SharedMutex(const SharedMutex&) = delete;

  void lock() ACQUIRE() { mutex_.lock(); }
  void unlock() RELEASE() { mutex_.unlock(); }
  void lock_shared() ACQUIRE_SHARED() { mutex_.lock_shared(); }
  void unlock_shared() RELEASE_SHARED() { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

// Holds a shared mutex for writing until it goes out of scope.
class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  WriterLock(const WriterLock&) = delete;
  ~WriterLock() RELEASE() { mutex_.unlock(); }

 private:
  SharedMutex& mutex_;
};

// Holds a shared mutex for reading until it goes out of scope.
class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex) : mutex_(mutex) {
    mutex_.lock_shared();
  }
  ReaderLock(const ReaderLock&) = delete;
  ~ReaderLock() RELEASE_GENERIC() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

}  // namespace trainyard
