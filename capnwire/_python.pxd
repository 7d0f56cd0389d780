"""Small pieces of the CPython API that Cython's own declarations lack: text, small ints, types."""

from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint64_t

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* ASCII decides how a str is made; eight bytes at a time, never past the end. */
    static inline int capnwire_all_ascii(const uint8_t* p, size_t n) {
        uint64_t all = 0, word;
        for (; n >= 8; p += 8, n -= 8) { memcpy(&word, p, 8); all |= word; }
        for (; n; p++, n--) all |= *p;
        return (all & 0x8080808080808080ULL) == 0;
    }
    /* Turns the UnicodeDecodeError that is set into a Utf8Error. */
    static inline void capnwire_not_utf8(void) {
        PyObject *kind, *value, *trace, *module, *error = NULL;
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return;
        PyErr_Fetch(&kind, &value, &trace);
        PyErr_NormalizeException(&kind, &value, &trace);
        module = PyImport_ImportModule("capnwire.errors");
        if (module) error = PyObject_CallMethod(module, "Utf8Error", "O", value);
        if (error) PyErr_SetObject((PyObject*)Py_TYPE(error), error);
        Py_XDECREF(error); Py_XDECREF(module);
        Py_XDECREF(kind); Py_XDECREF(value); Py_XDECREF(trace);
    }
    /* A new str from UTF-8 bytes; of others `escaping` makes surrogates (PEP 383), or else it is
       NULL with Utf8Error set. */
    static inline PyObject* capnwire_text(const uint8_t* p, Py_ssize_t n, int escaping) {
        PyObject* text;
        if (n > 1 && capnwire_all_ascii(p, (size_t)n)) {
            text = PyUnicode_New(n, 127);
            if (text) memcpy(PyUnicode_1BYTE_DATA(text), p, (size_t)n);
            return text;
        }
        text = PyUnicode_DecodeUTF8((const char*)p, n, escaping ? "surrogateescape" : NULL);
        if (text == NULL) capnwire_not_utf8();
        return text;
    }
    static inline PyObject* capnwire_uint64(uint64_t v) {
        return v < (1u << 30) ? PyLong_FromLong((long)v) : PyLong_FromUnsignedLongLong(v);
    }
    /* An exact, small, non-negative int without a call. */
    static inline int capnwire_small_int(PyObject* o, uint64_t* out) {
        if (!PyLong_CheckExact(o)) return 0;
    #if PY_VERSION_HEX < 0x030C0000
        Py_ssize_t size = Py_SIZE(o);
        if (size == 0) { *out = 0; return 1; }
        if (size == 1) { *out = ((PyLongObject*)o)->ob_digit[0]; return 1; }
        return 0;
    #else
        if (!PyUnstable_Long_IsCompact((PyLongObject*)o)) return 0;
        Py_ssize_t value = PyUnstable_Long_CompactValue((PyLongObject*)o);
        if (value < 0) return 0;
        *out = (uint64_t)value;
        return 1;
    #endif
    }
    static inline int capnwire_compact_ascii(PyObject* s) { return PyUnicode_IS_COMPACT_ASCII(s); }
    /* A bare instance of a type without collector support; the caller fills every field. */
    static inline PyObject* capnwire_new_object(PyObject* type, size_t size) {
        PyObject* o = (PyObject*)PyObject_Malloc(size);
        if (o == NULL) return PyErr_NoMemory();
        return PyObject_Init(o, (PyTypeObject*)type);
    }
    static inline int capnwire_has_buffer(PyObject* o) { return PyObject_CheckBuffer(o); }
    """
    object capnwire_text(const uint8_t* p, Py_ssize_t n, int escaping)
    object capnwire_uint64(uint64_t value)
    bint capnwire_small_int(PyObject* o, uint64_t* out)
    bint capnwire_compact_ascii(PyObject* s)
    bint capnwire_has_buffer(PyObject* o)
    object capnwire_new_object(PyObject* type, size_t size)

    object PyBytes_FromStringAndSize(const char* p, Py_ssize_t n)
    object PyFloat_FromDouble(double v)
    object PyLong_FromLong(long v)
    object PyLong_FromLongLong(long long v)
    const char* PyUnicode_AsUTF8AndSize(PyObject* o, Py_ssize_t* n) except NULL
    void* PyUnicode_1BYTE_DATA(PyObject* o)
    Py_ssize_t PyUnicode_GET_LENGTH(PyObject* o)
    bint PyUnicode_Check(PyObject* o)
    bint PyUnicode_CheckExact(PyObject* o)
    bint PyLong_Check(PyObject* o)
    bint PyLong_CheckExact(PyObject* o)
    bint PyFloat_Check(PyObject* o)
    bint PyFloat_CheckExact(PyObject* o)
    double PyFloat_AS_DOUBLE(PyObject* o)
    double PyFloat_AsDouble(PyObject* o) except? -1.0
    bint PyBool_Check(PyObject* o)
    bint PyDict_CheckExact(PyObject* o)
    bint PyDict_Check(PyObject* o)
    bint PyList_CheckExact(PyObject* o)
    bint PyTuple_CheckExact(PyObject* o)
    bint PyBytes_CheckExact(PyObject* o)
    bint PyIndex_Check(PyObject* o)
    Py_ssize_t PyList_GET_SIZE(PyObject* o)
    PyObject* PyList_GET_ITEM(PyObject* o, Py_ssize_t i)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* o)
    PyObject* PyTuple_GET_ITEM(PyObject* o, Py_ssize_t i)
    void PyList_SET_ITEM(object o, Py_ssize_t i, object value)
    object PyList_New(Py_ssize_t n)
    int PyDict_Next(PyObject* d, Py_ssize_t* at, PyObject** key, PyObject** value)
    int PyDict_SetItem(object d, PyObject* key, object value) except -1
    PyObject* PyDict_GetItemWithError(object d, PyObject* key) except? NULL
    long long PyLong_AsLongLongAndOverflow(PyObject* o, int* overflow) except? -1
    unsigned long long PyLong_AsUnsignedLongLong(PyObject* o) except? 0xFFFFFFFFFFFFFFFFU
    int PyObject_IsTrue(PyObject* o) except -1
    object PyNumber_Index(PyObject* o)
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject* error) except? -1
    void Py_INCREF(PyObject* o)
    void Py_DECREF(PyObject* o)
    void Py_XDECREF(PyObject* o)
    PyObject* Py_TYPE(PyObject* o)
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
