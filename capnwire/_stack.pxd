"""What recursion may take of the C stack: levels are counted, and the room that is left seen to."""

from libc.stdint cimport uint32_t

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(__linux__) || defined(__APPLE__)
    #include <pthread.h>
    #endif
    #if defined(__linux__) && !defined(__GLIBC__)
    #include <sys/syscall.h>
    #include <unistd.h>
    #endif
    #if defined(_MSC_VER)
    #define CAPNWIRE_THREAD __declspec(thread)
    #else
    #define CAPNWIRE_THREAD __thread
    #endif
    #define CAPNWIRE_EASY_LEVELS 16      /* what every stack has room for */
    #define CAPNWIRE_KEPT_STACK 0x8000   /* for what the innermost level calls */

    /* The ends of this thread's stack; the same when nobody knows. */
    static void capnwire_find_stack(uintptr_t* low, uintptr_t* high) {
    #if defined(__APPLE__)
        *high = (uintptr_t)pthread_get_stackaddr_np(pthread_self());
        *low = *high - pthread_get_stacksize_np(pthread_self());
    #elif defined(__linux__)
        pthread_attr_t attributes;
        void* base;
        size_t size;
    #ifndef __GLIBC__
        /* musl tells of the main thread what is mapped by now only. */
        if (getpid() == (pid_t)syscall(SYS_gettid)) return;
    #endif
        if (pthread_getattr_np(pthread_self(), &attributes)) return;
        if (pthread_attr_getstack(&attributes, &base, &size) == 0) {
            *low = (uintptr_t)base;
            *high = *low + size;
        }
        pthread_attr_destroy(&attributes);
    #endif
    }
    /* Whether there is no room for another level.  A stack of its own, as some libraries give their
       coroutines, lies elsewhere: of that nothing is known. */
    static int capnwire_stack_is_short(void) {
    #if defined(__GNUC__)
        static CAPNWIRE_THREAD int known = 0;
        static CAPNWIRE_THREAD uintptr_t low = 0, high = 0;
        uintptr_t at = (uintptr_t)__builtin_frame_address(0);
        if (!known) {
            capnwire_find_stack(&low, &high);
            known = 1;
        }
        return at >= low && at < high && at - low < CAPNWIRE_KEPT_STACK;
    #else
        return 0;
    #endif
    }
    static inline int capnwire_may_nest(uint32_t level) {
        return level < CAPNWIRE_EASY_LEVELS || !capnwire_stack_is_short();
    }
    /* Py_EnterRecursiveCall gives -1 or 1 for an error, by version; and a program may have raised
       Python's limit far beyond what the C stack holds. */
    static inline int capnwire_enter(int* level, int most, const char* where) {
        if (*level >= most) {
            PyErr_Format(PyExc_RecursionError, "more than %d levels%s", most, where);
            return -1;
        }
        if (!capnwire_may_nest((uint32_t)*level)) {
            PyErr_Format(PyExc_RecursionError, "the stack of this thread ends%s", where);
            return -1;
        }
        if (Py_EnterRecursiveCall(where)) return -1;
        ++*level;
        return 0;
    }
    static inline void capnwire_leave(int* level) { --*level; Py_LeaveRecursiveCall(); }
    """
    bint capnwire_may_nest(uint32_t level)
    int capnwire_enter(int* level, int most, const char* where) except -1
    void capnwire_leave(int* level)
