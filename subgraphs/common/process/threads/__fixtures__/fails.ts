throw new Error('this code does not load')
