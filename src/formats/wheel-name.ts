const SEPARATORS = /[-_.]+/g;

/** The form in which names of Python packages are compared (PEP 503): `Zope_Interface` is `zope-interface`. */
export const normalPythonName = (name: string): string => name.replace(SEPARATORS, '-').toLowerCase();
